// The error of the GPU commands.

/** Its message says what is missing or has failed, and what to do. */
export class GpuError extends Error {}
