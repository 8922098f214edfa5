// The order of the guide's pages. A test checks that every page of docs/ is here.

/** `name` is that of the file in docs/, without the extension. */
const page = (text: string, name: string) => ({ text, name });

export const chapters = [
  {
    text: 'Start',
    items: [
      page('Getting started', 'getting-started'),
      page('Install', 'install'),
      page('The dashboard', 'dashboard'),
      page('Quickstarts', 'quickstarts'),
    ],
  },
  {
    text: 'Serve models',
    items: [
      page('Models', 'models'),
      page('Deployments', 'deployments'),
      page('Embeddings and reranking', 'embeddings'),
      page('Routing', 'routing'),
      page('Stored responses', 'stored-responses'),
      page('Limits', 'limits'),
      page('Usage', 'usage'),
      page('Batches', 'batches'),
    ],
  },
  {
    text: 'Connect clients',
    items: [
      page('Codex', 'codex'),
      page('Claude Code', 'claude-code'),
      page('opencode', 'opencode'),
      page('openai-agents', 'openai-agents'),
      page('LangChain', 'langchain'),
      page('AI SDK', 'ai-sdk'),
      page('Open WebUI', 'open-webui'),
      page('Clients of Ollama', 'ollama'),
    ],
  },
  {
    text: 'Offer machines',
    items: [
      page('Machines', 'machines'),
      page('LXD and Incus', 'incus'),
      page('Scaling out', 'scaling-out'),
    ],
  },
  {
    text: 'Operate',
    items: [
      page('Operations', 'operations'),
      page('Public access and TLS', 'public-access'),
      page('Security model', 'security'),
      page('Troubleshooting', 'troubleshooting'),
      page('Benchmarks', 'benchmarks'),
    ],
  },
  {
    text: 'Reference',
    items: [
      page('The APIs', 'api'),
      page('Errors', 'errors'),
      page('The CLI', 'cli'),
      page('Commands', 'commands'),
      page('Configuration', 'configuration'),
      page('Settings', 'settings'),
    ],
  },
];
