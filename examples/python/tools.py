# Lets a model call a function, and tells it the result.
# Run it with: pip install openai && MILLRACE_API_KEY=secret_... python examples/python/tools.py
import json
import os

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("MILLRACE_URL", "http://127.0.0.1:8080") + "/v1",
    api_key=os.environ["MILLRACE_API_KEY"],
)
model = os.environ.get("MILLRACE_MODEL", "llama3.1-8b-instruct")


def get_weather(city: str) -> str:
    return f"It is sunny in {city}, 21 degrees."


tools = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Get the weather in a city",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]
messages = [{"role": "user", "content": "What is the weather in Paris?"}]
answer = client.chat.completions.create(
    model=model, messages=messages, tools=tools, temperature=0
).choices[0].message
messages.append(answer.model_dump(exclude_none=True))

for call in answer.tool_calls or []:
    print(f"The model calls {call.function.name}({call.function.arguments})")
    result = get_weather(**json.loads(call.function.arguments))
    messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

final = client.chat.completions.create(model=model, messages=messages, tools=tools, temperature=0)
print(final.choices[0].message.content)
