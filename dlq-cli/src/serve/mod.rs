//! The dashboard: a store looked after in a browser. One binary, nothing fetched from outside, readable without JavaScript.
//!
//! `dlq serve` [listens](listen) on this machine. A service mounts the [`Router`] behind its own authentication and says who
//! is there:
//!
//! ```
//! use dlq_cli::serve::{Dashboard, Identity, Role};
//! use retry_runtime::dead_letter::MemoryStore;
//!
//! let store = std::sync::Arc::new(MemoryStore::new());
//! let dashboard = Dashboard::new(store)
//!     .mounted_at("/dead-letters")
//!     .allow_actions(true)
//!     .identify(|request| {
//!         // What the service's own layer found out.
//!         let user = request.headers.get("x-user")?.to_str().ok()?;
//!         Some(Identity::new(user, Role::Operator))
//!     });
//! let service: axum::Router = axum::Router::new().merge(dashboard.router());
//! # drop(service);
//! ```

mod app;
mod assets;
mod cache;
mod facts;
mod failure;
mod guard;
mod identity;
mod listen;
mod live;
mod means;
mod pages;
mod params;
mod payload;
mod session;
mod shown;
mod sorted;
mod store;
mod svg;
mod tokens;

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::request::Parts;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get, post};
use retry_runtime::dead_letter::{Redactor, StoreClock};

use app::{Access, App};
use failure::Failure;
pub use identity::{Identity, Role};
pub use listen::{ListenError, Listening, listen};
pub use means::Means;
pub use store::DashboardStore;
pub use tokens::{Tokens, TokensError, new_token};

/// A dashboard before it is served. Nobody is let in until it is said who, and nothing can be changed until that is allowed.
#[must_use = "a dashboard is served by its router"]
pub struct Dashboard {
    app: App,
}

impl fmt::Debug for Dashboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dashboard").field("store", &self.app.name).field("may_act", &self.app.may_act).finish()
    }
}

impl Dashboard {
    /// A dashboard over a store.
    pub fn new<S: DashboardStore + 'static>(store: S) -> Self {
        let store: Arc<dyn DashboardStore> = Arc::new(store);
        let app = App {
            patient: Arc::clone(&store),
            store,
            name: String::new(),
            base: String::new(),
            may_act: false,
            access: Access::Nobody,
            hosts: None,
            means: Means::default(),
            redactor: Redactor::standard(),
            clock: StoreClock::system(),
            secure: false,
            key: String::new(),
            sessions: session::Sessions::default(),
            facts: cache::Kept::default(),
            sorted: sorted::Sorted::default(),
            live: live::Live::default(),
            refusals: app::Refusals::default(),
            streams: std::sync::atomic::AtomicUsize::new(0),
        };
        Self { app }
    }

    /// Another handle of the same store, by which questions are asked that take long - groups, plans, counts - so that no page
    /// waits behind them. A handle that only reads will do. By default the store itself.
    pub fn numbers_by<S: DashboardStore + 'static>(mut self, store: S) -> Self {
        self.app.patient = Arc::new(store);
        self
    }

    /// What the store is called on the pages: its path, or its address without a password.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.app.name = name.into();
        self
    }

    /// The path of its first page, in front of all others: `/dead-letters`. The root by default.
    pub fn mounted_at(mut self, path: impl AsRef<str>) -> Self {
        let path = path.as_ref().trim_matches('/');
        self.app.base = if path.is_empty() { String::new() } else { format!("/{path}") };
        self
    }

    /// Whether letters and operations can be changed; no by default. (Payloads can be asked for either way.)
    pub fn allow_actions(mut self, allowed: bool) -> Self {
        self.app.may_act = allowed;
        self
    }

    /// The function says who sends a request, whom the program around has let in; `None`: nobody, and the request is refused.
    /// The name is the actor of all they do, in the audit.
    pub fn identify(mut self, who: impl Fn(&Parts) -> Option<Identity> + Send + Sync + 'static) -> Self {
        self.app.access = Access::Identified(Arc::new(who));
        self
    }

    /// Lets those in who have one of these tokens: in a header `Authorization: Bearer TOKEN`, or by a form.
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.app.access = Access::Tokens(tokens);
        self
    }

    /// Lets everybody in who reaches it, under one name: for an address that nobody else reaches.
    pub fn open_to(mut self, identity: Identity) -> Self {
        self.app.access = Access::Everybody(identity);
        self
    }

    /// Refuses requests for any other host than `localhost`, addresses, and these names: a page of another site cannot have
    /// its own name point here. By default the program around is trusted to look.
    pub fn hosts(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.app.hosts = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Who does jobs again; by default the application's own workers.
    pub fn means(mut self, means: Means) -> Self {
        self.app.means = means;
        self
    }

    /// What is taken out of payloads when they are shown; the standard secrets by default.
    pub fn redact(mut self, redactor: Redactor) -> Self {
        self.app.redactor = redactor;
        self
    }

    /// The clock that ages are told by; the system's by default.
    pub fn clock(mut self, clock: StoreClock) -> Self {
        self.app.clock = clock;
        self
    }

    /// Cookies are sent over TLS only: where browsers reach it by `https`. No by default.
    pub fn behind_tls(mut self, behind: bool) -> Self {
        self.app.secure = behind;
        self
    }

    /// The routes, to be merged into those of a service: each begins with the path that it is [mounted at](Self::mounted_at).
    /// Must be served inside a tokio runtime.
    pub fn router(mut self) -> Router {
        // Without random numbers no form is accepted: no page can be made then, which says so.
        self.app.key = tokens::random().unwrap_or_default();
        let app = Arc::new(self.app);
        facts::Facts::warm(&app);
        let at = |path: &str| app.path(path);
        let router = Router::new().route(&at("/"), get(pages::overview::page));
        let router = if app.base.is_empty() { router } else { router.route(&app.base, get(pages::overview::page)) };
        router
            .route(&at("/letters"), get(pages::letters::page))
            .route(&at("/letters/{id}"), get(pages::letter::page))
            .route(&at("/letters/{id}/payload"), post(pages::letter::reveal))
            .route(&at("/letters/{id}/{verb}"), post(pages::hand::act))
            .route(&at("/groups"), get(pages::groups::page))
            .route(&at("/groups/note"), post(pages::groups::note))
            .route(&at("/operations"), get(pages::operations::list).post(pages::actions::start))
            .route(&at("/operations/new"), get(pages::plan::page))
            .route(&at("/operations/{id}"), get(pages::operations::one))
            .route(&at("/operations/{id}/run"), post(pages::operations::run_here))
            .route(&at("/operations/{id}/{verb}"), post(pages::operations::steer))
            .route(&at("/ledger"), get(pages::ledger::page))
            .route(&at("/ledger/reset"), post(pages::ledger::reset))
            .route(&at("/counters"), get(pages::counters::page))
            .route(&at("/counters/threshold"), post(pages::counters::threshold))
            .route(&at("/audit"), get(pages::audit::page))
            .route(&at("/live"), get(live::stream))
            .route(&at("/login"), get(pages::login::page).post(pages::login::log_in))
            .route(&at("/logout"), post(pages::login::log_out))
            .route(&at("/assets/{name}"), get(|Path(name): Path<String>| async move { assets::serve(&name) }))
            .route(&at("/{*rest}"), any(|| async { Failure::no_page() }))
            .method_not_allowed_fallback(|| async {
                Failure::new(axum::http::StatusCode::METHOD_NOT_ALLOWED, "this page takes no such request")
            })
            .layer(from_fn_with_state(Arc::clone(&app), guard::guard))
            .with_state(app)
    }
}
