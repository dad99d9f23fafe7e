"""`/v1/models`."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from .server_settings import ServerSettings
from .shared_fields import make_model_error

__all__ = ["build_model_router", "describe_model"]


def describe_model(settings: ServerSettings, created: int) -> dict[str, Any]:
    """Return a model in the shape of OpenAI's. created: seconds since 1970 at which the server started."""
    return {"id": settings.model_name, "object": "model", "created": created, "owned_by": "constrain"}


def build_model_router() -> APIRouter:
    """Return the routes of models."""
    router = APIRouter()

    @router.get("/v1/models")
    async def list_models(request: Request) -> dict[str, Any]:
        service = request.app.state.service
        return {"object": "list", "data": [describe_model(service.settings, service.started)]}

    @router.get("/v1/models/{name:path}")
    async def show_model(name: str, request: Request) -> dict[str, Any]:
        service = request.app.state.service
        if name != service.settings.model_name:
            raise make_model_error(name, None, service.settings)
        return describe_model(service.settings, service.started)

    return router
