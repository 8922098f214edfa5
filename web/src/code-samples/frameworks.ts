// Programs and settings that use a model here through frameworks and applications. docs/ has a page about each.

import { sampleQuestion } from './chat.ts';

/** Programs are in TypeScript and read the key from the environment. */
export function toFrameworkCode(address: string, model: string): Record<string, string> {
  const baseUrl = `${address}/v1`;
  return {
    'openai-agents': [
      "import { Agent, run, setDefaultOpenAIClient, setTracingDisabled } from '@openai/agents';",
      "import OpenAI from 'openai';",
      '',
      'setDefaultOpenAIClient(',
      `  new OpenAI({ baseURL: '${baseUrl}', apiKey: process.env.MILLRACE_API_KEY }),`,
      ');',
      'setTracingDisabled(true);',
      '',
      `const agent = new Agent({ name: 'Miller', model: '${model}' });`,
      `const result = await run(agent, '${sampleQuestion}');`,
      'console.log(result.finalOutput);',
    ].join('\n'),
    LangChain: [
      "import { ChatOpenAI } from '@langchain/openai';",
      '',
      'const model = new ChatOpenAI({',
      `  configuration: { baseURL: '${baseUrl}' },`,
      '  apiKey: process.env.MILLRACE_API_KEY,',
      `  model: '${model}',`,
      '});',
      `const answer = await model.invoke('${sampleQuestion}');`,
      'console.log(answer.text);',
    ].join('\n'),
    'AI SDK': [
      "import { createOpenAICompatible } from '@ai-sdk/openai-compatible';",
      "import { generateText } from 'ai';",
      '',
      'const millrace = createOpenAICompatible({',
      "  name: 'millrace',",
      `  baseURL: '${baseUrl}',`,
      '  apiKey: process.env.MILLRACE_API_KEY,',
      '});',
      'const { text } = await generateText({',
      `  model: millrace('${model}'),`,
      `  prompt: '${sampleQuestion}',`,
      '});',
      'console.log(text);',
    ].join('\n'),
    'Open WebUI': [`OPENAI_API_BASE_URL=${baseUrl}`, 'OPENAI_API_KEY=secret_...'].join('\n'),
  };
}
