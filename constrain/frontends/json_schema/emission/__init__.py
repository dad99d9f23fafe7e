"""From a schema document to its Grammar: the pipeline, the emitter, and the errors of unsatisfiable schemas."""
