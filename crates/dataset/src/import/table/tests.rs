//! Tables of all three kinds.

use super::*;

fn written(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn refusal(name: &str, bytes: &[u8]) -> String {
    let (_folder, path) = written(name, bytes);
    let message = Table::read(&path).unwrap_err().to_string();
    message.rsplit('/').next().unwrap().to_owned()
}

#[test]
fn csv_with_quotes_empty_lines_and_other_separators() {
    let text = "\u{feff}File, class ,qx\n\"a, b.jpg\",cup,0.5\n\n\"c\nd.jpg\",,nan\n";
    let (_folder, path) = written("t.csv", text.as_bytes());
    let table = Table::read(&path).unwrap();
    assert_eq!(table.columns, ["file", "class", "qx"]);
    let text = |text: &str| Cell::Text(text.to_owned());
    assert_eq!(table.rows[0], (2, vec![text("a, b.jpg"), text("cup"), text("0.5")]));
    assert_eq!(table.rows[1], (4, vec![text("c\nd.jpg"), Cell::Missing, Cell::Missing]));
    assert_eq!(table.place(1), "line 4");
    for separated in ["file;class\na;b\n", "file\tclass\na\tb\n"] {
        let (_folder, path) = written("t.tsv", separated.as_bytes());
        assert_eq!(Table::read(&path).unwrap().rows, [(2, vec![text("a"), text("b")])]);
    }
    assert_eq!(
        refusal("t.csv", b"file,class\na\n"),
        "t.csv: line 2 has 1 values, the first line names 2 columns"
    );
    assert_eq!(refusal("t.csv", b"file,class\n"), "t.csv: the table has no rows");
    assert_eq!(refusal("t.csv", b""), "t.csv: the table has no rows");
    assert_eq!(refusal("t.csv", b"file,File\na,b\n"), "t.csv: there are two columns \"file\"");
    assert_eq!(refusal("t.csv", b"file\n\xff\xfe\n"), "t.csv: line 2 is not UTF-8 text");
    assert!(refusal("t.xlsx", b"x").contains("expected a table"));
}

#[test]
fn json_lines_and_arrays() {
    let rows = [
        (1, vec![Cell::Text("a.jpg".into()), Cell::Number(1.5), Cell::Missing]),
        (2, vec![Cell::Text("b.jpg".into()), Cell::Missing, Cell::Text("cup".into())]),
    ];
    for (text, unit) in [
        (
            "{\"file\": \"a.jpg\", \"qx\": 1.5}\n{\"file\": \"b.jpg\", \"qx\": null, \"class\": \"cup\"}\n",
            "line",
        ),
        (
            "\u{feff}{\"file\": \"a.jpg\", \"qx\": 1.5}\n{\"file\": \"b.jpg\", \"qx\": null, \"class\": \"cup\"}\n",
            "line",
        ),
        ("[{\"file\": \"a.jpg\", \"qx\": 1.5}, {\"file\": \"b.jpg\", \"class\": \"cup\"}]", "row"),
    ] {
        let (_folder, path) = written("t.jsonl", text.as_bytes());
        let table = Table::read(&path).unwrap();
        let at = |name| table.column(name).unwrap();
        let order = [at("file"), at("qx"), at("class")];
        let ordered: Vec<(usize, Vec<Cell>)> = table
            .rows
            .iter()
            .map(|(number, cells)| (*number, order.iter().map(|&at| cells[at].clone()).collect()))
            .collect();
        assert_eq!((ordered.as_slice(), table.unit), (rows.as_slice(), unit));
    }
    assert!(
        refusal("t.jsonl", b"{\"file\": 1}\n{\"file\"\n").starts_with("t.jsonl: line 2 is not a JSON object")
    );
    assert!(refusal("t.jsonl", b"3\n").starts_with("t.jsonl: line 1 is not a JSON object"));
    assert_eq!(refusal("t.jsonl", b"\n"), "t.jsonl: the table has no rows");
}

#[test]
fn parquet_columns_of_any_plain_type() {
    use parquet::basic::Compression;
    use parquet::column::writer::ColumnWriter;
    use parquet::data_type::ByteArray;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    let schema = "message schema { OPTIONAL BYTE_ARRAY File (STRING); REQUIRED DOUBLE qx; OPTIONAL INT64 view; \
                  REQUIRED group list (LIST) { REPEATED group list { REQUIRED FLOAT element; } } }";
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY] {
        let properties = WriterProperties::builder().set_compression(compression).build();
        let schema = std::sync::Arc::new(parse_message_type(schema).unwrap());
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties.into()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        while let Some(mut column) = group.next_column().unwrap() {
            match column.untyped() {
                ColumnWriter::ByteArrayColumnWriter(w) => {
                    w.write_batch(&[ByteArray::from("a.jpg")], Some(&[1, 0]), None).unwrap()
                }
                ColumnWriter::DoubleColumnWriter(w) => w.write_batch(&[0.25, f64::NAN], None, None).unwrap(),
                ColumnWriter::Int64ColumnWriter(w) => w.write_batch(&[7], Some(&[0, 1]), None).unwrap(),
                ColumnWriter::FloatColumnWriter(w) => {
                    w.write_batch(&[1.0, 2.0, 3.0], Some(&[1, 1, 1]), Some(&[0, 1, 0])).unwrap()
                }
                _ => unreachable!(),
            };
            column.close().unwrap();
        }
        group.close().unwrap();
        let (_folder, path) = written("t.parquet", &writer.into_inner().unwrap());
        let table = Table::read(&path).unwrap();
        assert_eq!(
            (&table.columns[..], table.place(1)),
            (&["file", "qx", "view"].map(str::to_owned)[..], "row 2".into())
        );
        assert_eq!(table.rows[0].1, [Cell::Text("a.jpg".into()), Cell::Number(0.25), Cell::Missing]);
        assert_eq!(table.rows[1].1, [Cell::Missing, Cell::Missing, Cell::Number(7.0)]);
    }
    assert!(refusal("t.parquet", b"PAR1 and more").contains("not a readable Parquet file"));
}

/// Tables of four rows as other programs write them, see `tests/tables/README.md`.
fn of_others(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables").join(name)
}

#[test]
fn parquet_as_polars_and_pyarrow_compress_it() {
    let number = Cell::Number;
    let text = |text: &str| Cell::Text(text.to_owned());
    let rows = [
        (1, vec![text("a.jpg"), text("cup"), number(0.25), number(7.0)]),
        (2, vec![text("b.jpg"), text("cup"), number(0.5), Cell::Missing]),
        (3, vec![Cell::Missing, text("cup"), Cell::Missing, number(1.0)]),
        (4, vec![text("a.jpg"), text("cup"), number(-1.0), number(2.0)]),
    ];
    for name in ["polars_zstd", "pyarrow_zstd_pages_v2", "pyarrow_gzip", "pyarrow_lz4"] {
        let table = Table::read(&of_others(&format!("{name}.parquet"))).unwrap();
        assert_eq!(table.columns, ["file", "class", "qx", "view"], "{name}");
        assert_eq!(table.rows, rows, "{name}");
    }
    let refused = Table::read(&of_others("pyarrow_brotli.parquet")).unwrap_err().to_string();
    assert!(refused.ends_with(
        "pyarrow_brotli.parquet: its compression is not supported; write it with zstd, snappy, lz4, gzip or none"
    ));
}

#[test]
fn damaged_zstd_is_refused() {
    let whole = std::fs::read(of_others("polars_zstd.parquet")).unwrap();
    let frame = whole.windows(4).position(|bytes| bytes == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
    // Its first byte, and the length that it tells.
    for (at, word) in [(frame, "damaged zstd data"), (frame + 5, "a page is not as long as it says")] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        let message = refusal("t.parquet", &damaged);
        assert!(message.contains("not a readable Parquet file") && message.contains(word), "{message}");
    }
    for at in frame..frame + 40 {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        let (_folder, path) = written("t.parquet", &damaged);
        // Refused, or other values: without checksums nobody can tell.
        let _ = Table::read(&path);
    }
}
