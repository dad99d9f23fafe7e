"""An HTTP server in the shape of OpenAI's over one `constrain.Engine` (FastAPI; run by `constrain serve`).

    HTTP body -> request_body -> request_objects, request_fields   checked JSON; errors with JSON pointers
              -> answer_call                                       prompt, constraint, options of the Engine
              -> answer_service                                    runs it
              -> chat_endpoint, completion_endpoint, responses_endpoint

`application.create_app(engine, settings)` assembles it, and `server_settings` holds what the operator chooses.
"""
