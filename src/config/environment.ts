// What the environment alone says, for commands that need no configuration.

export type Environment = Record<string, string | undefined>;

/** How the program was started, such as `./millrace`, for hints that name a command. The launcher sets it. */
export const programName = (environment: Environment = process.env): string =>
  environment.MILLRACE_PROGRAM || 'millrace';

/** How an engine was started: the key that requests must have, and the threads of Node's pool. */
export const readEngineEnvironment = (environment: Environment = process.env) => ({
  key: environment.MILLRACE_API_KEY || null,
  poolThreads: Number(environment.UV_THREADPOOL_SIZE ?? 4),
});

/** Whether a program can show windows here. On Linux a session without DISPLAY, such as one by SSH, can't. */
export const hasDisplay = (environment: Environment = process.env): boolean =>
  process.platform !== 'linux' || Boolean(environment.DISPLAY || environment.WAYLAND_DISPLAY);

/** MILLRACE_LOG_LEVEL=debug or trace: print the stack of an error besides its message. */
export function wantsDetails(environment: Environment = process.env): boolean {
  return ['debug', 'trace'].includes(environment.MILLRACE_LOG_LEVEL ?? '');
}
