// What this browser remembers of launches: the last SSH key, and choices saved under a name.

import { emptyChoice, type LaunchChoice } from './launch-choice.ts';

const lastKeyItem = 'millrace.launch-key';
const templatesItem = 'millrace.launch-templates';
const maxTemplates = 20;

export interface LaunchTemplate {
  name: string;
  choice: LaunchChoice;
}

export const readLastKey = () => localStorage.getItem(lastKeyItem);
export const saveLastKey = (name: string) => localStorage.setItem(lastKeyItem, name);

/** Newest first. Templates of an earlier version get the members that they lack. */
export function readTemplates(): LaunchTemplate[] {
  try {
    const stored = JSON.parse(localStorage.getItem(templatesItem) ?? '[]') as LaunchTemplate[];
    return stored.map(({ name, choice }) => ({ name, choice: { ...emptyChoice, ...choice } }));
  } catch {
    return [];
  }
}

/** Replaces the template with the same name. The oldest of too many is dropped. */
export function saveTemplate(template: LaunchTemplate): LaunchTemplate[] {
  const others = readTemplates().filter(({ name }) => name !== template.name);
  return writeTemplates([template, ...others].slice(0, maxTemplates));
}

export const removeTemplate = (name: string): LaunchTemplate[] =>
  writeTemplates(readTemplates().filter((one) => one.name !== name));

function writeTemplates(templates: LaunchTemplate[]): LaunchTemplate[] {
  localStorage.setItem(templatesItem, JSON.stringify(templates));
  return templates;
}
