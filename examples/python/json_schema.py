# Asks for an answer that validates against a JSON schema.
# Run it with: pip install openai && MILLRACE_API_KEY=secret_... python examples/python/json_schema.py
import json
import os

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("MILLRACE_URL", "http://127.0.0.1:8080") + "/v1",
    api_key=os.environ["MILLRACE_API_KEY"],
)
schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 40},
        "age": {"type": "integer"},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
answer = client.chat.completions.create(
    model=os.environ.get("MILLRACE_MODEL", "llama3.1-8b-instruct"),
    messages=[{"role": "user", "content": "Anna is 30 years old and lives in Rome. Who is she?"}],
    response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": schema}},
    temperature=0,
)
person = json.loads(answer.choices[0].message.content)
print(person["name"], "is", person["age"], "years old")
