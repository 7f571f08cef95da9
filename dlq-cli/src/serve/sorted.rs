//! Pages of groups. To sort them a store counts all letters, which takes longer than a page waits where there are many: what
//! the first screen knows is used as far as it goes, and what it does not know is counted once however many ask.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use retry_runtime::dead_letter::{FailureGroups as _, Filter, FirstGroups, GroupOrder, GroupsPage, GroupsRequest};

use super::app::App;
use super::cache::Cache;
use super::facts::Counted;
use super::failure::Failure;

/// A page waits so long for groups that nobody knows yet.
const PATIENCE: Duration = Duration::from_millis(150);

/// What was counted is good for this long, or for ten times what it cost.
const GOOD_FOR: Duration = Duration::from_secs(2);

/// So many pages are kept.
const MOST: usize = 16;

/// A page that was asked for, on its way or there.
type Coming = Shared<BoxFuture<'static, Result<(Arc<GroupsPage>, Instant), Failure>>>;

#[derive(Clone)]
struct Known {
    request: GroupsRequest,
    asked: Instant,
    changes: (u64, u64),
    coming: Coming,
}

impl Known {
    fn is_good(&self, changes: (u64, u64)) -> bool {
        self.changes == changes
            && match self.coming.peek() {
                Some(Ok((_, done))) => done.elapsed() < GOOD_FOR.max(done.duration_since(self.asked) * 10),
                Some(Err(_)) => false,
                None => true,
            }
    }
}

/// Pages that were counted for somebody.
#[derive(Default)]
pub(super) struct Sorted(Mutex<Vec<Known>>);

/// A page of groups; `None`: it is being counted.
pub(super) async fn page(app: &Arc<App>, request: GroupsRequest) -> Result<Option<GroupsPage>, Failure> {
    if request.filter == Filter::owed() {
        // The first page of many is among what the first screen knows.
        let Some(known) = Cache::<Counted>::get(app).await else { return Ok(None) };
        let page = among(&known.numbers, &request).filter(|_| Cache::may_be_shown(app, &known));
        if page.is_some() {
            return Ok(page);
        }
    }
    match tokio::time::timeout(PATIENCE, count(app, request)).await {
        Ok(found) => found.map(|(page, _)| Some((*page).clone())),
        Err(_) => Ok(None),
    }
}

/// The page, where the first screen knows all of it.
fn among(facts: &Counted, request: &GroupsRequest) -> Option<GroupsPage> {
    let known = &facts.groups;
    let are_all = known.next.is_none() && facts.failed.is_empty();
    // Those with most letters say nothing about those that are newest, unless they are all there are.
    if !are_all && request.order != GroupOrder::MostLetters {
        return None;
    }
    let mut first = FirstGroups::new(request);
    for group in &known.groups {
        first.offer(group.counts.clone());
    }
    let (page, next) = first.page();
    if !are_all && next.is_none() {
        return None;
    }
    let by_name: HashMap<_, _> = known.groups.iter().map(|group| (group.counts.fingerprint.as_str(), group)).collect();
    let groups =
        page.iter().filter_map(|counts| by_name.get(counts.fingerprint.as_str()).map(|group| (*group).clone()));
    Some(GroupsPage::new(groups.collect(), next))
}

/// Counts, unless somebody is at it. It goes on when whoever asked has gone.
fn count(app: &Arc<App>, request: GroupsRequest) -> Coming {
    let mut known = app.sorted.0.lock().unwrap_or_else(PoisonError::into_inner);
    let changes = app.facts.changes();
    known.retain(|known| known.is_good(changes));
    if let Some(known) = known.iter().find(|known| known.request == request) {
        return known.coming.clone();
    }
    let (patient, wanted) = (Arc::clone(&app.patient), request.clone());
    let coming = async move {
        let page = patient.groups(wanted).await.map_err(Failure::from)?;
        Ok((Arc::new(page), Instant::now()))
    };
    let coming = coming.boxed().shared();
    if known.len() >= MOST {
        known.remove(0);
    }
    known.push(Known { request, asked: Instant::now(), changes, coming: coming.clone() });
    tokio::spawn(coming.clone().map(drop));
    coming
}
