# Asks a model one question with OpenAI's Python library.
# Run it with: pip install openai && MILLRACE_API_KEY=secret_... python examples/python/chat.py
import os

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("MILLRACE_URL", "http://127.0.0.1:8080") + "/v1",
    api_key=os.environ["MILLRACE_API_KEY"],
)
answer = client.chat.completions.create(
    model=os.environ.get("MILLRACE_MODEL", "llama3.1-8b-instruct"),
    messages=[{"role": "user", "content": "Who are you?"}],
)
print(answer.choices[0].message.content)
