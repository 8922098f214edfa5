// Commands that start coding agents on a model here. Options of the agents may be added at their end.

/** Codex and opencode compact a conversation before it exceeds the window, which they can't find out themselves. */
export function toAgentCode(
  address: string,
  model: string,
  contextWindow: number,
): Record<string, string> {
  const limit = { context: contextWindow, output: Math.min(8192, Math.floor(contextWindow / 4)) };
  const provider = `{name="Millrace", base_url="${address}/v1", env_key="MILLRACE_API_KEY", wire_api="responses"}`;
  const config = {
    provider: {
      millrace: {
        npm: '@ai-sdk/openai-compatible',
        options: { baseURL: `${address}/v1`, apiKey: '{env:MILLRACE_API_KEY}' },
        models: { [model]: { limit } },
      },
    },
  };
  return {
    'Claude Code': [
      `ANTHROPIC_BASE_URL="${address}" \\`,
      `ANTHROPIC_API_KEY="$MILLRACE_API_KEY" \\`,
      `claude --model ${model}`,
    ].join('\n'),
    Codex: [
      'codex -c model_provider=millrace \\',
      `  -c 'model_providers.millrace=${provider}' \\`,
      `  -c model=${model} -c model_context_window=${contextWindow}`,
    ].join('\n'),
    opencode: [
      "cat > opencode.json <<'JSON'",
      JSON.stringify(config, null, 2),
      'JSON',
      `opencode --model millrace/${model}`,
    ].join('\n'),
  };
}
