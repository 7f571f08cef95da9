//! `dead_letter(sink = ..)` takes a sink by reference, behind `Arc`, and as a trait object.

use std::sync::Arc;
use std::time::SystemTime;

use retry_runtime::StopReason;
use retry_runtime::dead_letter::{DeadLetter, DeadLetterSink, Parking, Ticket};
use retry_runtime::reply::Reply;

struct Takes;

impl DeadLetterSink for Takes {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        Reply::ready(Parking::Parked { letter_id: letter.kind })
    }
}

async fn hand_over<S: DeadLetterSink>(sink: S) -> Parking {
    sink.submit(DeadLetter::new("fetch", StopReason::Permanent, SystemTime::UNIX_EPOCH)).await
}

#[tokio::test]
async fn every_form_of_a_sink_takes_letters() {
    let object: Arc<dyn DeadLetterSink> = Arc::new(Takes);
    for parking in [hand_over(&Takes).await, hand_over(Arc::new(Takes)).await, hand_over(object).await] {
        assert!(matches!(parking, Parking::Parked { letter_id } if letter_id == "fetch"));
    }
}
