// What the schema of a route doesn't say: a description of each operation, and an example of its request and response.
// Endpoints of the inference APIs say it themselves. A test checks that every other operation is here.

import { deployments } from './deployment-operations.ts';
import type { OperationText } from './operation-text.ts';

const id = '0920582c7ff041399e34823a0be62549';
const instance_ids = [id];
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
