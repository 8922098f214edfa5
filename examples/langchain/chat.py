# Streams an answer and binds a tool with LangChain in Python.
# Run it with: pip install langchain-openai && MILLRACE_API_KEY=secret_... python examples/langchain/chat.py
import os

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

model = ChatOpenAI(
    base_url=os.environ.get("MILLRACE_URL", "http://127.0.0.1:8080") + "/v1",
    api_key=os.environ["MILLRACE_API_KEY"],
    model=os.environ.get("MILLRACE_MODEL", "llama3.1-8b-instruct"),
    temperature=0,
    max_tokens=100,
)

for chunk in model.stream("Who are you?"):
    print(chunk.text, end="", flush=True)
print()


@tool
def get_weather(city: str) -> str:
    """Get the weather in a city"""
    return f"It is sunny in {city}."


for call in model.bind_tools([get_weather]).invoke("What is the weather in Paris?").tool_calls:
    print(f"The model calls {call['name']}({call['args']}):", get_weather.invoke(call["args"]))
