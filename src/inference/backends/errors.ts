// Why a backend can't be added, changed or removed, in sentences.

import { conflict, notFound } from '#lib/errors.ts';

export const noSuchBackend = (model: string, name: string) =>
  notFound(`The backend ${JSON.stringify(`${model}/${name}`.slice(0, 200))}`);

export const nameTaken = (model: string, name: string) =>
  conflict(`A backend of ${model} is called ${name} already.`, 'name');

export const nameReserved = (name: string) =>
  conflict(`${name} is what the model that stands in is called. Choose another name.`, 'name');

export const tooManyBackends = (limit: number) =>
  conflict(`There are ${limit} backends already. Remove one, or put them in the file.`);

export const inFile = (id: string, what: 'removed' | 'changed') =>
  conflict(`${id} comes from the file and is ${what} there, under models.catalog.`);

export const notRemovable = (id: string) =>
  conflict(`${id} is served by weights on this machine: remove those on the models page instead.`);

export const isDeployed = (id: string) =>
  conflict(`${id} belongs to a deployment: change or remove that instead.`);

export const standInStays = (id: string) =>
  conflict(`${id} stands in where there is no other backend. Add one, and it steps back.`);

export const standInOff = () =>
  conflict('There is no stand-in: inference.stand_in is false in the configuration.');

export const hasBackend = (model: string, name: string) =>
  conflict(`${model} has a backend, ${name}. The stand-in answers only for models without one.`);

export const onlyUpstreams = (id: string) =>
  conflict(`${id} runs on this machine: it has neither a weight nor a limit of its own.`);
