// Where the log goes: to standard error, readable on a terminal, and to a file in the data directory.

import type { Config } from '#config/schema.ts';
import { createLogFile, toLogFile } from '#lib/telemetry/log-file.ts';
import { formatLog } from '#lib/telemetry/log-format.ts';
import { type LogOutput, stderrOutput } from '#lib/telemetry/log-sink.ts';

export function toLogOutputs({ log, data_dir: dataDir }: Config): LogOutput[] {
  const { stderr } = process;
  const isText = log.format === 'text' || (log.format === 'auto' && stderr.isTTY);
  const hasColours = stderr.isTTY && stderr.hasColors();
  const onStderr = isText
    ? { ...stderrOutput, format: (block: Buffer) => formatLog(block, hasColours) }
    : stderrOutput;
  if (log.file_mib === 0) return [onStderr];
  return [onStderr, createLogFile(toLogFile(dataDir), log.file_mib * 2 ** 20)];
}
