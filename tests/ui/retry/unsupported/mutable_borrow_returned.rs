use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

struct Pool {
    items: Vec<u32>,
}

impl Pool {
    #[retry]
    async fn first(&mut self) -> Result<&mut u32, Busy> {
        self.items.first_mut().ok_or(Busy)
    }

    #[retry]
    fn inside(&mut self) -> Result<Option<&mut u32>, Busy> {
        Ok(self.items.first_mut())
    }
}

#[retry]
fn named<'a>(items: &'a mut [u32]) -> Result<&'a mut u32, Busy> {
    items.first_mut().ok_or(Busy)
}

fn main() {}
