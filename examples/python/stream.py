# Prints an answer as it is generated, then what it used.
# Run it with: pip install openai && MILLRACE_API_KEY=secret_... python examples/python/stream.py
import os

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("MILLRACE_URL", "http://127.0.0.1:8080") + "/v1",
    api_key=os.environ["MILLRACE_API_KEY"],
)
stream = client.chat.completions.create(
    model=os.environ.get("MILLRACE_MODEL", "llama3.1-8b-instruct"),
    messages=[{"role": "user", "content": "Tell me a short story."}],
    max_tokens=100,
    stream=True,
    stream_options={"include_usage": True},
)
for chunk in stream:
    for choice in chunk.choices:
        print(choice.delta.content or "", end="", flush=True)
    if chunk.usage is not None:
        print(f"\n{chunk.usage.total_tokens} tokens")
