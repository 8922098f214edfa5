#!/bin/sh
# Chats with a model by curl: a plain answer, a stream, a tool call and an answer by JSON schema.
# Run it with: MILLRACE_API_KEY=secret_... sh examples/curl/chat.sh
set -eu

url="${MILLRACE_URL:-http://127.0.0.1:8080}/v1/chat/completions"
model="${MILLRACE_MODEL:-llama3.1-8b-instruct}"

# Sends its argument as the request's body.
chat() {
  curl --fail-with-body --silent --show-error --no-buffer "$url" \
    -H "Authorization: Bearer ${MILLRACE_API_KEY:?is not set}" \
    -H 'Content-Type: application/json' \
    -d "$1"
  echo
}

echo '== A plain answer'
chat '{"model": "'"$model"'", "messages": [{"role": "user", "content": "Who are you?"}]}'

echo '== A stream, with its usage in the last event'
chat '{"model": "'"$model"'", "stream": true, "stream_options": {"include_usage": true},
  "max_tokens": 24, "messages": [{"role": "user", "content": "Tell me a short story."}]}'

echo '== A tool call'
chat '{"model": "'"$model"'", "temperature": 0,
  "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
  "tools": [{"type": "function", "function": {
    "name": "get_weather", "description": "Get the weather in a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]}'

echo '== An answer by JSON schema'
chat '{"model": "'"$model"'", "temperature": 0,
  "messages": [{"role": "user", "content": "Anna is 30 years old and lives in Rome. Who is she?"}],
  "response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 40}, "age": {"type": "integer"}},
    "required": ["name", "age"], "additionalProperties": false}}}}'
