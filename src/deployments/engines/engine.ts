// BOUNDARY. An engine that was started for a replica: a process of this computer, or a machine that runs one. A replica
// knows nothing else of where its engine is.

import type { Measured } from '#cloud/drivers/driver.ts';
import type { Rest } from '#deployments/ground/ladder.ts';
import type { DeploymentSpec } from '#deployments/ground/spec.ts';
import type { GpuStats } from '#lib/computer/nvidia-smi.ts';

/** Why an engine ended, or could not be started. */
export interface Failure {
  /** A sentence for clients of the inference APIs. It names no paths, hosts or repositories. */
  readonly publicMessage: string;
  /** For people who manage the deployment. */
  readonly reason: string;
  /** True if the next start would fail as well. Default: false. */
  readonly isPermanent?: boolean;
}

export const toFailure = (publicMessage: string, detail = ''): Failure => ({
  publicMessage,
  reason: `${publicMessage} ${detail}`.trim(),
});

/** How an engine ends by SIGILL. llama.cpp is compiled for the processor that it is built on. */
export const illegalInstruction =
  'The engine used an instruction that this processor lacks. Build it for this processor.';

/** What an engine uses now. */
export interface EngineStats {
  readonly memoryBytes: Measured<number>;
  /** Memory of its machine, or of the computer that it is a process of. */
  readonly totalBytes: number;
  readonly gpus: Measured<readonly GpuStats[]>;
}

export interface Engine {
  /** The port of 127.0.0.1 on this computer that leads to it. */
  readonly port: number;
  /** The key that it asks for. */
  readonly key: string;
  /** What it does before it has printed anything that says more. */
  readonly phase: string;
  /** True while it waits for something that does not count as its start, such as a copy of its weights. Default: false. */
  readonly isPreparing?: boolean;
  /**
   * Resolves when the engine has ended: with how, or with null if that is no failure. Never rejects. What is left of it
   * must be removed by `stop`.
   */
  readonly ended: Promise<Failure | null>;
  /** It has answered for the first time, or again after it rested. */
  setReady?(at: number): void;
  /** Writes that it rests, for the next server to know. */
  setResting?(rest: Rest): Promise<void>;
  /** Ends the engine, but keeps its machine. May be repeated. Rejects with a sentence. Undefined if it has no machine. */
  halt?(): Promise<void>;
  /** Starts an engine that was halted. */
  revive?(): Promise<void>;
  /** The last lines of its output, the newest last. */
  log(): readonly string[];
  /** Measures what it uses. Calls within a second share one measurement. Rejects with a sentence. */
  stats(): Promise<EngineStats>;
  /** Ends the engine and removes what is left of it. May be repeated. Never rejects. */
  stop(): Promise<void>;
  /** This server ends. A process ends with it. A machine goes on, for the next server to adopt. */
  leave(): Promise<void>;
}

/** What to start an engine for. */
export interface EngineOrder {
  /** Id of the replica. */
  readonly id: string;
  readonly deployment: { readonly id: string; readonly name: string; readonly accountId: string };
  readonly revision: number;
  readonly spec: DeploymentSpec;
}

/** What is known of something that is done before there is an engine. */
export interface StartStage {
  /** True while it waits for a free machine: nothing is lost if it is stopped. Default: false. */
  readonly isWaiting?: boolean;
  /** How long it will probably take from now on. Default: 0. */
  readonly leftMs?: number;
}

/** How a replica follows the start of its engine. */
export interface StartWatch {
  /** Called with what is done before there is an engine. The engine loads from the last call on. */
  report(progress: string, stage?: StartStage): void;
  /** The replica is stopped. */
  readonly signal: AbortSignal;
}

/** Rejects with a sentence if the engine can't be started. */
export type StartEngine = (order: EngineOrder, watch: StartWatch) => Promise<Engine>;
