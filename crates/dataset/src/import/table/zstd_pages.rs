//! Pages of Parquet columns that zstd has compressed, decoded in Rust: the `parquet` crate itself needs a C compiler for them.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::bloom_filter::Sbbf;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::RowGroupReader;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;
use ruzstd::decoding::StreamingDecoder;

/// A row group of a file, like the one of the `parquet` crate, whose columns may be compressed with zstd.
pub(super) struct RowGroup<'a> {
    pub(super) file: &'a Arc<File>,
    pub(super) metadata: &'a RowGroupMetaData,
}

impl RowGroupReader for RowGroup<'_> {
    fn metadata(&self) -> &RowGroupMetaData {
        self.metadata
    }

    fn num_columns(&self) -> usize {
        self.metadata.num_columns()
    }

    fn get_column_page_reader(&self, number: usize) -> Result<Box<dyn PageReader>> {
        let column = self.metadata.column(number);
        let rows = usize::try_from(self.metadata.num_rows())?;
        let pages = |column| SerializedPageReader::new(Arc::clone(self.file), column, rows, None);
        if !matches!(column.compression(), Compression::ZSTD(_)) {
            return Ok(Box::new(pages(column)?));
        }
        // A column that says it is not compressed gives its pages as they lie in the file.
        let raw = column.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
        let most_bytes = u64::try_from(column.uncompressed_size())?;
        Ok(Box::new(ZstdPages { raw: pages(&raw)?, most_bytes }))
    }

    fn get_column_bloom_filter(&self, _: usize) -> Option<&Sbbf> {
        None
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>> {
        RowIter::from_row_group(projection, self)
    }
}

/// Pages of one column, decompressed as they are read.
struct ZstdPages {
    raw: SerializedPageReader<File>,
    /// What all pages of the column make together, as the file says: no page may make more.
    most_bytes: u64,
}

impl ZstdPages {
    /// The page with `kept` leading bytes as they are and the rest decompressed.
    fn decompressed(&self, bytes: &[u8], kept: usize) -> Result<Vec<u8>> {
        let refused =
            |error: &dyn std::fmt::Display| ParquetError::General(format!("damaged zstd data: {error}"));
        let (kept, packed) = bytes.split_at_checked(kept).ok_or_else(|| refused(&"a page ends too early"))?;
        let mut all = kept.to_vec();
        // A page without values may be left out.
        if !packed.is_empty() {
            let mut frame = StreamingDecoder::new(packed).map_err(|error| refused(&error))?;
            let told = frame.decoder.content_size();
            let most = self.most_bytes + 1;
            let found = frame.by_ref().take(most).read_to_end(&mut all).map_err(|error| refused(&error))?;
            // Where a frame tells its length; nothing is told as zero.
            if told != 0 && told != found as u64 {
                return Err(refused(&"a page is not as long as it says"));
            }
        }
        if all.len() as u64 > self.most_bytes {
            return Err(refused(&"a page is larger than its column"));
        }
        Ok(all)
    }
}

impl PageReader for ZstdPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(mut page) = self.raw.get_next_page()? else { return Ok(None) };
        match &mut page {
            Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => {
                *buf = self.decompressed(buf, 0)?.into();
            }
            Page::DataPageV2 {
                buf, def_levels_byte_len, rep_levels_byte_len, is_compressed: true, ..
            } => {
                let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
                *buf = self.decompressed(buf, levels)?.into();
            }
            Page::DataPageV2 { is_compressed: false, .. } => {}
        }
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.raw.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.raw.skip_next_page()
    }
}

impl Iterator for ZstdPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
