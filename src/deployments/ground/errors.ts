// Why a deployment can't be created or changed, in sentences.

import { conflict, invalidBody, notFound, Refusal } from '#lib/errors.ts';

export const noSuchDeployment = (name: string) =>
  notFound(`The deployment ${JSON.stringify(name.slice(0, 100))}`);

export const deploymentNameTaken = (name: string) =>
  conflict(
    `There is a deployment called ${name} already. Change it with \`millrace deployments update\`, remove it, or choose another name.`,
  );

export const tooManyDeployments = (limit: number) =>
  conflict(`There are ${limit} deployments already. Remove one first.`);

export const nothingToRollBack = (name: string) =>
  conflict(`${name} was not changed since it was created, so there is nothing to roll back to.`);

export const inFile = (name: string) =>
  conflict(
    `${name} comes from the configuration file. Change or remove it there, under deployments, and send the server SIGHUP.`,
  );

export const inFileOf = (name: string, server: string) =>
  conflict(
    `${name} comes from the configuration file of the server ${server}. Change or remove it there, under deployments, and send that server SIGHUP.`,
  );

export const serverSilent = (name: string) =>
  conflict(
    `The server that runs ${name} can't be reached from this one. Send the request to that server, and check its server.peer_url.`,
  );

export const doesNotFit = (model: string, need: string) =>
  conflict(
    `${model} does not fit: it needs ${need}. Lower target or the context, or quantise the model. To start it anyway, turn the memory check off: \`--no-check-memory\`, \`check_memory: false\` in the configuration file, or Check memory in the dashboard.`,
  );

export const flawedEngine = (setting: 'program' | 'source', reason: string) =>
  invalidBody(reason, setting);

export const onlyChatModels = (model: string, kind: string) =>
  invalidBody(`${model} is for ${kind}. Deployments serve models that chat.`, 'model');

export const noSuchInstanceType = (name: string) =>
  invalidBody(
    `There is no instance type ${JSON.stringify(name.slice(0, 100))}. List them with \`millrace instances types\`, or use "host".`,
    'runs_on',
  );

export const notForKeys = () =>
  new Refusal(
    'forbidden',
    'Engines run as processes of the server, so only an owner who is signed in may change deployments.',
  );
