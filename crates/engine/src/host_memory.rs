//! How much memory the machine has left for this process. Linux gives out more than it has and then ends whoever uses
//! it; asking first turns that into a sentence.

use std::fs;
use std::path::Path;

/// Bytes that can be taken without pushing anything out but caches; `None` where the system does not say.
pub fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| machine(&text));
    [machine, control_group()].into_iter().flatten().min()
}

/// What `/proc/meminfo` says: memory and swap that are free or can be freed.
fn machine(text: &str) -> Option<u64> {
    let kibibytes = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().strip_suffix("kB")?.trim().parse().ok()
    };
    Some((kibibytes("MemAvailable")? + kibibytes("SwapFree").unwrap_or(0)).saturating_mul(1024))
}

/// What the limit of a container or a batch job leaves (version 2 or 1 of control groups).
fn control_group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = |line: &str| -> Option<u64> {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let (root, limit, used) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => return None,
        };
        // In a container the path may be that of the host, and the container's own files lie at the root.
        [Path::new(root).join(path), root.into()].iter().find_map(|folder| left(folder, limit, used))
    };
    groups.lines().filter_map(own).min()
}

fn left(folder: &Path, limit: &str, used: &str) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    group(&read(limit)?, &read(used)?, &read("memory.stat").unwrap_or_default())
}

/// What is left of a limit, where there is one. Files that were read count as used, but give way.
fn group(limit: &str, used: &str, statistics: &str) -> Option<u64> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let cached =
        statistics.lines().find_map(|line| number(line.strip_prefix("inactive_file ")?)).unwrap_or(0);
    Some(number(limit)?.saturating_sub(number(used)?).saturating_add(cached))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_s_words_are_understood() {
        let text = "MemTotal:       16384 kB\nMemFree:  1 kB\nMemAvailable:    1000 kB\nSwapFree:  24 kB\n";
        assert_eq!(machine(text), Some(1024 * 1024));
        assert_eq!(machine("MemTotal: 16384 kB"), None);
        let statistics = "anon 5\ninactive_file 200\n";
        assert_eq!(group("max\n", "700\n", statistics), None);
        assert_eq!(group("1000\n", "700\n", statistics), Some(500));
        assert_eq!(group("1000\n", "1700\n", ""), Some(0));
    }
}
