// What the schema of a route doesn't say: a description of each operation, and an example of its request and response.
// A test checks that every operation is here.

import { deployments } from './deployment-operations.ts';
import type { OperationText } from './operation-text.ts';

const model = 'llama3.1-8b-instruct';
const messages = [{ role: 'user', content: 'What is a millrace?' }];
const id = '0920582c7ff041399e34823a0be62549';
const instance_ids = [id];
const usage = { prompt_tokens: 13, completion_tokens: 12, total_tokens: 25 };
const responseUsage = {
  input_tokens: 13,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 12,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 25,
};
const text = 'A channel that carries water to a mill wheel.';
const region = 'us-east-1';
const rules = [
  { protocol: 'tcp', port_range: [22, 22], source_network: '0.0.0.0/0', description: 'SSH' },
];
const noTickets = 'This cloud has no support tickets, so this is always refused.';
const noFabric = 'This cloud has no fabric partitions, so this is always refused.';

const file = {
  id: `file-${id}`,
  object: 'file',
  bytes: 2_048,
  created_at: 1_794_873_600,
  expires_at: 1_797_465_600,
  filename: 'requests.jsonl',
  purpose: 'batch',
  status: 'processed',
};

const inference: Record<string, OperationText> = {
  listModels: {
    description: 'Lists every model that this key may use, with its context window and its price.',
  },
  getOneModel: { description: 'Returns one model of the list.' },
  answerAConversation: {
    description:
      'Answers a list of messages, as OpenAI’s chat completions do. With `stream: true` the answer arrives as ' +
      'server-sent events, which end with `data: [DONE]`. The `x-served-by` header names what answered; it is ' +
      '`builtin` if the built-in model stood in.',
    body: { model, messages, max_tokens: 64 },
    response: {
      id: 'chatcmpl-8f14e45fceea167a',
      object: 'chat.completion',
      created: 1_794_873_600,
      model,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: text, refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage,
    },
  },
  continueAText: {
    description:
      'Continues one or several texts, as OpenAI’s legacy completions do. Prefer chat completions for models that ' +
      'follow instructions.',
    body: { model, prompt: 'A millrace is', max_tokens: 16 },
    response: {
      id: 'cmpl-8f14e45fceea167a',
      object: 'text_completion',
      created: 1_794_873_600,
      model,
      choices: [
        { index: 0, text: ' a channel.', logprobs: null, finish_reason: 'stop', stop_reason: null },
      ],
      usage,
    },
  },
  createAMessage: {
    description:
      'Answers a list of messages, as Anthropic’s Messages API does, with any model. With `stream: true` the answer ' +
      'arrives as server-sent events, from `message_start` to `message_stop`. Members and blocks that only other ' +
      'servers know are ignored.',
    body: { model, messages, max_tokens: 64 },
    response: {
      id: `msg_${id}`,
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: {
        input_tokens: 13,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        output_tokens: 12,
      },
    },
  },
  uploadAFile: {
    description:
      'Stores the input of a batch: JSON Lines, one request per line. It is deleted after some days, or as ' +
      '`expires_after` says.',
    response: file,
  },
  listFiles: { description: 'Lists uploaded files and the results of batches, newest first.' },
  getOneFile: {
    description: 'Returns what is known about a file, without its content.',
    response: file,
  },
  downloadAFile: { description: 'Returns the content of a file, such as the results of a batch.' },
  deleteAFile: {
    description: 'Deletes a file. One that a batch still reads can’t be deleted.',
    response: { id: file.id, object: 'file', deleted: true },
  },
  createABatch: {
    description:
      'Runs every line of a file as a request, when nothing else needs the model, at a lower price. All lines are ' +
      'checked first. Results are in files that the batch names once it has ended.',
    body: { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' },
  },
  listBatches: { description: 'Lists batches, newest first.' },
  getOneBatch: { description: 'Returns a batch: its state, and how many of its lines are done.' },
  cancelABatch: {
    description:
      'Stops a batch. Lines in flight are cut off and not charged. What was done stays in its files.',
  },
  countTheTokensOfAMessage: {
    description:
      'Returns how many tokens the prompt of `POST /v1/messages` would have, counted by the model’s own backend with ' +
      'its template and the tools. It generates nothing and costs nothing.',
    body: { model, messages },
    response: { input_tokens: 13 },
  },
  embedTexts: {
    description:
      'Turns texts or lists of token ids into vectors, as OpenAI’s embeddings do, in the order they were sent. Each vector ' +
      'of a model on this machine has length one. `encoding_format: base64` returns little-endian 32-bit floats. ' +
      '`dimensions` cuts the vectors of models that were made for it.',
    body: { model: 'nomic-embed-text', input: ['A mill wheel', 'A water channel'] },
    response: {
      object: 'list',
      data: [
        { object: 'embedding', index: 0, embedding: [0.6, 0.8] },
        { object: 'embedding', index: 1, embedding: [0.8, 0.6] },
      ],
      model: 'nomic-embed-text',
      usage: { prompt_tokens: 10, total_tokens: 10 },
    },
  },
  rankDocumentsByTheirRelevanceToAQuery: {
    description:
      'Scores each document from 0 to 1 and returns them sorted, in the form that Jina and Cohere share. The same ' +
      'endpoint is at `/rerank`.',
    body: {
      model: 'bge-reranker-v2-m3',
      query: 'What carries water?',
      documents: ['A mill wheel', { text: 'A water channel' }],
      top_n: 1,
      return_documents: true,
    },
    response: {
      id,
      model: 'bge-reranker-v2-m3',
      results: [{ index: 1, relevance_score: 0.97, document: { text: 'A water channel' } }],
      usage: { prompt_tokens: 24, total_tokens: 24 },
    },
  },
  turnATextOrAConversationIntoTokens: {
    description:
      'Returns the tokens of `prompt`, or of `messages` after the model’s template, as vLLM does. It generates nothing ' +
      'and costs nothing. The same endpoint is at `/tokenize`.',
    body: { model, prompt: 'A mill wheel', return_token_strs: true },
    response: {
      count: 3,
      max_model_len: 131_072,
      tokens: [32, 2606, 13289],
      token_strs: ['A', ' mill', ' wheel'],
    },
  },
  turnTokensIntoText: {
    description: 'Returns the text of token ids. The same endpoint is at `/detokenize`.',
    body: { model, tokens: [32, 2606, 13289] },
    response: { prompt: 'A mill wheel' },
  },
  getOneResponse: {
    description:
      'Returns a stored response. With `stream=true` the events of a background response after number `starting_after` ' +
      'are sent, and it is followed until it ends.',
  },
  deleteAResponse: {
    description:
      'Deletes a response with its input and output. Responses that follow it can’t be continued any more.',
  },
  cancelABackgroundResponse: {
    description:
      'Cancels a background response that has not ended. What was generated until then is billed.',
  },
  listTheInputOfAResponse: {
    description: 'Lists the items that the request of a stored response brought, newest first.',
  },
  createAResponse: {
    description:
      'Answers a conversation of items, as OpenAI’s Responses API does. `input` is a text or a list of messages, tool ' +
      'calls, their outputs and reasoning. With `stream: true` the response arrives as server-sent events with a type ' +
      'and a number each. It is stored unless `store` is false, and `previous_response_id` continues a stored one.',
    body: { model, input: 'What is a millrace?', max_output_tokens: 64 },
    response: {
      id: `resp_${id}`,
      object: 'response',
      created_at: 1_794_873_600,
      status: 'completed',
      model,
      output: [
        {
          id: `msg_${id}0000`,
          type: 'message',
          status: 'completed',
          role: 'assistant',
          content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
        },
      ],
      error: null,
      incomplete_details: null,
      usage: responseUsage,
    },
  },
  countTheTokensOfAResponse: {
    description:
      'Returns how many tokens the prompt of `POST /v1/responses` would have, with its template and tools. It ' +
      'generates nothing and costs nothing.',
    body: { model, input: 'What is a millrace?' },
    response: { object: 'response.input_tokens', input_tokens: 13 },
  },
  compactAConversation: {
    description:
      'Replaces a long conversation by its newest messages and a summary that the model writes. Send the output as the ' +
      'beginning of the next `input`. The summary is sealed: only this server can read it, for your account.',
    body: { model, input: 'What is a millrace?' },
    response: {
      id: `resp_${id}`,
      object: 'response.compaction',
      created_at: 1_794_873_600,
      output: [{ id: `cmp_${id}`, type: 'compaction', encrypted_content: 'mJ0x…' }],
      usage: responseUsage,
    },
  },
};

const instances: Record<string, OperationText> = {
  listInstanceTypesAndWhereTheyHaveCapacity: {
    description:
      'Lists every type with its size, its price in cents per hour and the regions that have room for it now.',
  },
  listRunningInstances: {
    description: 'Lists the account’s instances that are not terminated.',
  },
  getOneInstance: {
    description: 'Returns an instance with its state, its address and what may be done with it.',
  },
  changeTheNameAndTheTagsOfAnInstance: {
    description: 'Replaces the members that are sent and keeps the others.',
    body: { name: 'trainer', tags: [{ key: 'team', value: 'research' }] },
  },
  launchAnInstance: {
    description:
      'Launches one instance, or `quantity` of them, and returns at once. Poll the instance until its status is ' +
      '`active`. An account may launch once in ten seconds.',
    body: {
      region_name: region,
      instance_type_name: 'cpu_1x_general',
      ssh_key_names: ['laptop'],
      name: 'trainer',
    },
    response: { data: { instance_ids } },
  },
  restartInstancesTheyKeepTheirDisksAndAddresses: {
    description: 'Restarts the operating system of each instance.',
    body: { instance_ids },
  },
  turnInstancesOffAndOnAgain: {
    description: 'Turns the power of each instance off and on, for one that no longer answers.',
    body: { instance_ids },
  },
  terminateInstancesTheirDisksAreDeletedTheirFilesystemsAreKept: {
    description: 'Ends each instance and its cost. This can’t be undone.',
    body: { instance_ids },
  },
};

const resources: Record<string, OperationText> = {
  listSshKeys: { description: 'Lists the public keys that instances can be launched with.' },
  addAnSshKeyOrGenerateOne: {
    description:
      'Adds a public key. Without `public_key` a key pair is generated, and the response holds the private key, which ' +
      'is not stored and not shown again.',
    body: { name: 'laptop' },
  },
  deleteAnSshKey: { description: 'Deletes a key that no instance uses.' },
  listFilesystems: { description: 'Lists the account’s filesystems and what they hold.' },
  createAFilesystem: {
    description: 'Creates a filesystem, which outlives the instances that mount it.',
    body: { name: 'datasets', region },
  },
  deleteAFilesystemAndItsContents: {
    description: 'Deletes a filesystem that no instance mounts. This can’t be undone.',
  },
  listImages: { description: 'Lists the images that an instance can be launched from.' },
  listRegions: { description: 'Lists the regions of this cloud.' },
  listAuditEventsNewestFirst: {
    description:
      'Lists who changed what. `page_token` of a response leads to the next page; `start` and `end` bound the time.',
  },
};

const firewall: Record<string, OperationText> = {
  listTheRulesOfTheAccount: { description: 'Lists the inbound rules of all instances.' },
  replaceTheRulesOfTheAccount: {
    description: 'Replaces all inbound rules. What no rule allows is dropped.',
    body: { data: rules },
  },
  getTheGlobalRuleset: { description: 'Returns the rules that hold for every instance.' },
  changeTheGlobalRuleset: {
    description: 'Replaces the rules that hold for every instance.',
    body: { rules },
  },
  listRulesets: { description: 'Lists the rulesets that instances can be launched with.' },
  createARuleset: {
    description: 'Creates a ruleset for `firewall_rulesets` of a launch.',
    body: { name: 'web', region, rules },
  },
  getARuleset: { description: 'Returns a ruleset and the instances that use it.' },
  changeARuleset: {
    description: 'Replaces the name or the rules. Running instances follow at once.',
    body: { name: 'web', rules },
  },
  deleteARulesetThatNoInstanceUses: { description: 'Deletes a ruleset.' },
};

const notOffered: Record<string, OperationText> = {
  listMaintenanceEventsOlderPath: { description: 'The same list under an older path.' },
  listMaintenanceEvents: { description: 'Always empty: this cloud plans no maintenance.' },
  listTickets: { description: 'Always empty: this cloud has no support tickets.' },
  createATicket: {
    description: noTickets,
    body: { subject: 'Slow disk', description: 'Writes take 2 s.', type: 'incident' },
  },
  getATicket: { description: noTickets },
  changeATicket: { description: noTickets },
  listATicketSAttachments: { description: noTickets },
  startTheUploadOfAnAttachment: { description: noTickets },
  deleteAnAttachment: { description: noTickets },
  completeTheUploadOfAnAttachment: { description: noTickets },
  getTheUrlOfAnAttachment: { description: noTickets },
  createAFabricPartition: { description: noFabric, body: { name: 'ring', region } },
  renameAFabricPartition: { description: noFabric, body: { name: 'ring' } },
  deleteAFabricPartition: { description: noFabric },
};

export const operationTexts: Record<string, OperationText> = {
  ...inference,
  ...instances,
  ...resources,
  ...firewall,
  ...notOffered,
  ...deployments,
};

export const tags = [
  {
    name: 'Inference',
    description:
      'Compatible with OpenAI’s API. Set the base URL of any OpenAI client to this server’s `/v1`.',
  },
  {
    name: 'Instances',
    description: 'Machines you can ssh into. Compatible with version 1 of Lambda’s cloud API.',
  },
  { name: 'SSH keys', description: 'Public keys for instances.' },
  { name: 'Filesystems', description: 'Storage that outlives instances.' },
  { name: 'Firewall', description: 'Which traffic reaches instances.' },
  {
    name: 'Deployments',
    description: 'Models that this server runs. Our extension of the cloud API.',
  },
  { name: 'Catalog', description: 'Images, regions and the audit log.' },
  { name: 'Maintenance', description: 'For clients that poll it. Always empty.' },
  { name: 'Tickets', description: 'For clients that poll them. Not offered by this cloud.' },
  { name: 'Fabric', description: 'For clients that poll it. Not offered by this cloud.' },
];
