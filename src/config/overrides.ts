// The environment variables and flags that override a setting of the file. Flags win over variables.

export const overrides = [
  { path: 'data_dir', env: 'MILLRACE_DATA_DIR', flag: '--data-dir <path>' },
  { path: 'server.host', env: 'MILLRACE_HOST', flag: '--host <address>' },
  { path: 'server.port', env: 'MILLRACE_PORT', flag: '--port <number>' },
  { path: 'server.public_url', env: 'MILLRACE_PUBLIC_URL', flag: '--public-url <url>' },
  { path: 'server.peer_url', env: 'MILLRACE_PEER_URL', flag: null },
  { path: 'database.url', env: 'DATABASE_URL', flag: '--database-url <url>' },
  { path: 'inference.threads', env: 'MILLRACE_THREADS', flag: '--threads <number>' },
  { path: 'models.hub_url', env: 'MILLRACE_HUB_URL', flag: '--hub-url <url>' },
  // Secrets have no flag: every user of the computer can read a command line.
  { path: 'models.hub_token', env: 'HF_TOKEN', flag: null },
  { path: 'telemetry.otlp_url', env: 'OTEL_EXPORTER_OTLP_ENDPOINT', flag: null },
  { path: 'server.metrics_key', env: 'MILLRACE_METRICS_KEY', flag: null },
  { path: 'secret_key', env: 'MILLRACE_SECRET_KEY', flag: null },
  { path: 'redis.url', env: 'REDIS_URL', flag: null },
  { path: 'log.level', env: 'MILLRACE_LOG_LEVEL', flag: '--log-level <level>' },
  { path: 'log.format', env: 'MILLRACE_LOG_FORMAT', flag: '--log-format <format>' },
] as const;
