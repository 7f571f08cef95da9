use retry_runtime::{Classify, retry};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

#[retry(clone(boby), share(conection))]
fn misspelt(body: String, mut connection: Vec<u8>) -> Result<usize, Busy> {
    connection.push(1);
    Ok(body.len() + connection.len())
}

#[retry(clone(x))]
fn none() -> Result<u32, Busy> {
    Err(Busy)
}

struct Client;

impl Client {
    #[retry(clone(body))]
    fn method(&self, text: String) -> Result<usize, Busy> {
        Ok(text.len())
    }
}

fn main() {}
