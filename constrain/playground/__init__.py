"""The playground: one page that shows what a constraint accepts, what it does to a model, and how samplers differ.

`playground_routes.add_playground` adds it to an application of `constrain.serving`, `play_application.create_play_app`
serves it alone. The page is in `static/`: HTML, CSS and ES modules as they are, without a build step or a third party.
"""
