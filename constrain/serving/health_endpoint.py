"""`/health`, `/health/live`, `/health/ready` and `/metrics`."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST

from .operations import Operations

__all__ = ["build_health_router"]


def build_health_router() -> APIRouter:
    """Return the routes by which a server is watched.

    /health/live answers 200 while the process answers at all, /health/ready and /health only while requests are
    accepted: 503 from the beginning of the drain on.
    """
    router = APIRouter()

    @router.get("/health/live")
    async def show_liveness() -> dict[str, str]:
        return {"status": "ok"}

    @router.get("/health")
    @router.get("/health/ready")
    async def show_readiness(request: Request) -> JSONResponse:
        operations: Operations = request.app.state.operations
        is_draining = operations.is_draining
        return JSONResponse({"status": "draining" if is_draining else "ok"}, 503 if is_draining else 200)

    @router.get("/metrics")
    async def show_metrics(request: Request) -> Response:
        operations: Operations = request.app.state.operations
        return Response(operations.metrics.render(), media_type=CONTENT_TYPE_LATEST)

    return router
