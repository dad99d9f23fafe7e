"""The routes of the page: its files, which need no key, and what it asks the server.

    GET  /, /playground/FILE              the page; see `page_files`
    GET  /playground/about                version, model, limits
    POST /playground/inspect              {source, text}
    POST /playground/complete             {source, text}
    POST /playground/step                 {source, prompt, tokens, bars, seed}
    POST /playground/law                  {source, prompt}
    POST /playground/sample               {source, prompt, sampler, draws, max_tokens, seed}: a stream of events

They pass the operations layer of `constrain.serving` as all requests do: keys, limits, deadlines, hang-ups, the log.
Bodies must be JSON by their Content-Type, which pages of other sites cannot send without this server's consent.
"""

from __future__ import annotations

from collections.abc import Collection

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse, Response

from ..serving.event_responses import respond_with_events
from ..serving.request_body import read_body
from ..serving.request_errors import RequestError
from ..serving.request_objects import RequestObject
from .page_files import list_page_files
from .playground_service import MOST_DRAWS, PlaygroundService
from .sampler_rounds import COMPARED_SAMPLERS
from .source_reading import read_source_object
from .step_report import MOST_BARS

__all__ = ["add_playground", "add_service"]

SEEDS = 1 << 32


def add_playground(app: FastAPI) -> Collection[str]:
    """Add the playground to an application of `constrain.serving.application.create_app`.

    Returns
    -------
    collection of str
        The paths of its files, which need no key.
    """
    return add_service(app, PlaygroundService(app.state.operations, app.state.service.engine))


def add_service(app: FastAPI, service: PlaygroundService) -> Collection[str]:
    """Add the routes of a PlaygroundService to an application; return the paths of its files."""
    app.state.playground = service
    for path in list_page_files():
        app.add_api_route(path, send_file, methods=["GET"], name=f"playground {path}")
    app.include_router(build_playground_router())
    return tuple(list_page_files())


async def send_file(request: Request) -> Response:
    """Send a file of the page, or 304 if the browser has it."""
    file = list_page_files()[request.scope["route"].path]
    if request.headers.get("if-none-match") == file.headers["ETag"]:
        return Response(status_code=304, headers=file.headers)
    return Response(file.body, headers=file.headers)


async def read_request(request: Request) -> tuple[PlaygroundService, RequestObject]:
    """Return the service, and the body of a request. Raise RequestError if it is not JSON or exceeds a limit."""
    service: PlaygroundService = request.app.state.playground
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestError("the Content-Type of a request must be application/json", status=415, code="invalid_type")
    return service, RequestObject(await read_body(request, service.operations.settings))


def read_seed(body: RequestObject) -> int:
    """Return the member `seed`, by default 0."""
    return body.read_count("seed", 0, SEEDS - 1) or 0


def build_playground_router() -> APIRouter:
    """Return the routes of what the page asks."""
    router = APIRouter(prefix="/playground")

    @router.get("/about")
    async def describe(request: Request) -> JSONResponse:
        return JSONResponse(request.app.state.playground.describe())

    @router.post("/inspect")
    async def inspect(request: Request) -> JSONResponse:
        service, body = await read_request(request)
        source, text = read_source_object(body), body.read_text("text") or ""
        body.finish()
        return JSONResponse(await service.inspect(source, text))

    @router.post("/complete")
    async def complete(request: Request) -> JSONResponse:
        service, body = await read_request(request)
        source, text = read_source_object(body), body.read_text("text") or ""
        body.finish()
        return JSONResponse(await service.complete(source, text))

    add_model_routes(router)
    return router


def add_model_routes(router: APIRouter) -> None:
    """Add the routes that run the model."""

    @router.post("/step")
    async def step(request: Request) -> JSONResponse:
        service, body = await read_request(request)
        source, prompt = read_source_object(body), body.read_text("prompt") or ""
        tokens, bars, seed = read_tokens(body, service), body.read_count("bars", 1, MOST_BARS) or 12, read_seed(body)
        body.finish()
        return JSONResponse(await service.step(source, prompt, tokens, bars, seed))

    @router.post("/law")
    async def law(request: Request) -> JSONResponse:
        service, body = await read_request(request)
        source, prompt = read_source_object(body), body.read_text("prompt") or ""
        body.finish()
        return JSONResponse(await service.law(source, prompt))

    @router.post("/sample")
    async def sample(request: Request) -> Response:
        service, body = await read_request(request)
        source, prompt = read_source_object(body), body.read_text("prompt") or ""
        sampler = body.require_option("sampler", COMPARED_SAMPLERS)
        draws = body.read_count("draws", 1, MOST_DRAWS) or 64
        most = body.read_count("max_tokens", 1, service.operations.settings.max_tokens) or 32
        seed = read_seed(body)
        body.finish()
        events = service.sample(source, prompt, sampler, draws, most, seed)
        return await respond_with_events(events, ends_with="[DONE]")


def read_tokens(body: RequestObject, service: PlaygroundService) -> list[int]:
    """Return the member `tokens`: ids of the vocabulary. Raise RequestError at the place of one that is not."""
    listed = body.read_list("tokens", service.operations.settings.max_tokens) or []
    for place, token in listed:
        if type(token) is not int or not 0 <= token < service.vocabulary.size:
            raise RequestError(f"a token is a whole number below {service.vocabulary.size}", place)
    return [token for _, token in listed]
