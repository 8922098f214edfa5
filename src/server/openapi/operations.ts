// What the schema of a route doesn't say: a description of each operation, and an example of its request and response.
// A test checks that every operation is here.

export interface OperationText {
  description: string;
  /** An example of the request body. */
  body?: object;
  /** An example of the response. */
  response?: object;
}

const model = 'llama3.1-8b-instruct';
const messages = [{ role: 'user', content: 'What is a millrace?' }];
const id = '0920582c7ff041399e34823a0be62549';
const instance_ids = [id];
const usage = { prompt_tokens: 13, completion_tokens: 12, total_tokens: 25 };
const text = 'A channel that carries water to a mill wheel.';
const region = 'us-east-1';
const rules = [
  { protocol: 'tcp', port_range: [22, 22], source_network: '0.0.0.0/0', description: 'SSH' },
];
const noTickets = 'This cloud has no support tickets, so this is always refused.';
const noFabric = 'This cloud has no fabric partitions, so this is always refused.';

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
  { name: 'Catalog', description: 'Images, regions and the audit log.' },
  { name: 'Maintenance', description: 'For clients that poll it. Always empty.' },
  { name: 'Tickets', description: 'For clients that poll them. Not offered by this cloud.' },
  { name: 'Fabric', description: 'For clients that poll it. Not offered by this cloud.' },
];
