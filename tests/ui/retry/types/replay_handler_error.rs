use retry_runtime::dead_letter::{MemoryStore, Replayer};

#[derive(Debug)]
struct Plain;

fn main() {
    let replayer = Replayer::new(MemoryStore::new());
    let replayer = replayer.on("fetch", |_| async { Err::<(), _>(Plain) });
    let _ = replayer.on_blocking("store", |_| Err::<(), _>(Plain));
}
