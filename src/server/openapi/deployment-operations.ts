// Texts and examples of the operations on deployments.

import type { OperationText } from './operation-text.ts';

export const deployments: Record<string, OperationText> = {
  listDeployments: {
    description: 'Lists the models that this server runs by itself, with their replicas and load.',
  },
  getOneDeployment: { description: 'Returns a deployment with its replicas and load.' },
  readTheLastLinesThatTheEnginePrinted: {
    description:
      'Returns the last 50 lines of the newest replica, or of the last one that failed. For owners.',
  },
  computeWhetherAModelFits: {
    description:
      'Computes the memory that a model needs: its weights, the KV cache of `target` requests with `context` tokens each, and the engine itself; and whether the server’s computer and each instance type have it. `need` is null if the model is neither on the server nor in the list of known models. Paths are for owners.',
  },
  findTheEngineThatSuitsTheServerSComputer: {
    description:
      'Returns the engine that the dashboard selects first: vLLM if it is installed and there is a GPU, else llama-server if it is installed, else the built-in engine.',
  },
  listKnownModels: {
    description: 'Lists well-known open models, with their size and licence.',
  },
  getWhatADeploymentServedAndCost: {
    description:
      'Returns the tokens that a deployment served in the last 30 days or since it was created, how long its replicas ran, what their machines cost in that time, how many hours it had no replica, and what that saved; and its tokens per second and time to first token in the last five minutes.',
  },
  measureWhatTheReplicasUse: {
    description:
      'Measures the memory of each replica, and the load and memory of the GPUs that it uses. On a machine, these are the figures of the machine. Beside the server, they are the resident memory of the engine’s processes, and the GPUs on which one of them computes. A figure that can’t be measured has the reason in `unavailable`. Replicas whose engine has not started yet are left out. Nothing is measured between calls, and calls within a second share one measurement.',
  },
  deployAModel: {
    description:
      'Runs a model beside the server, or with `runs_on` on machines of an instance type. A replica starts with the first request unless `min` is set. For owners who are signed in, because engines may be processes of the server.',
    body: {
      name: 'llama',
      model: 'llama3.1-8b-instruct',
      engine: 'vllm',
      source: 'meta-llama/Llama-3.1-8B-Instruct',
      max: 2,
    },
  },
  changeADeployment: {
    description:
      'Changes what is given; null returns a setting to its default. Another engine, program, source, argument, environment, place, image or set-up script makes a new revision. It starts beside the old one, which is drained once the new one answers. If it never answers, the old one stays. Other changes take effect at once.',
    body: { max: 4 },
  },
  removeADeploymentRunningRequestsFinish: {
    description:
      'Stops its replicas after their requests, for at most ten minutes, and removes it.',
  },
  returnToTheSettingsBeforeTheLastChange: {
    description: 'Restores the settings before the last change, as another change would.',
  },
  stopAllReplicasRunningRequestsFinish: {
    description: 'Stops all replicas. Requests are refused until it is started.',
  },
  startAStoppedDeploymentAgain: {
    description: 'Lets requests start replicas again. Also after a failure.',
  },
};
