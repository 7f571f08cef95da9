//! The files that pages need, in the binary. Nothing is fetched from anywhere else.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};

/// Name, type, content. A name changes with its content, where that comes from others.
const FILES: &[(&str, &str, &str)] = &[
    ("dlq.css", "text/css; charset=utf-8", include_str!("assets/dlq.css")),
    ("dlq.js", "text/javascript; charset=utf-8", include_str!("assets/dlq.js")),
    ("htmx-4.0.1.min.js", "text/javascript; charset=utf-8", include_str!("assets/htmx-4.0.1.min.js")),
    ("htmx-4.0.1.LICENSE", "text/plain; charset=utf-8", include_str!("assets/htmx-4.0.1.LICENSE")),
    ("uplot-1.6.32.iife.min.js", "text/javascript; charset=utf-8", include_str!("assets/uplot-1.6.32.iife.min.js")),
    ("uplot-1.6.32.min.css", "text/css; charset=utf-8", include_str!("assets/uplot-1.6.32.min.css")),
    ("uplot-1.6.32.LICENSE", "text/plain; charset=utf-8", include_str!("assets/uplot-1.6.32.LICENSE")),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
];

/// One of them. They tell nothing of the store: anybody may have them.
pub(super) fn serve(name: &str) -> Response<Body> {
    let mut response = Response::default();
    let Some((_, kind, content)) = FILES.iter().find(|(known, ..)| *known == name) else {
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    *response.body_mut() = Body::from(*content);
    response
}
