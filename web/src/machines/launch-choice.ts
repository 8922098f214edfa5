// What the launch dialog collects over its three steps, and the request it becomes.

import type { InstanceTypes, Launch } from '#cloud/schema.ts';
import { findTagError, toTag } from './tags.ts';

/** A null member has not been chosen yet. */
export interface LaunchChoice {
  type: string | null;
  region: string | null;
  image: string | null;
  filesystems: string[];
  /** Ids of rulesets. */
  rulesets: string[];
  sshKey: string | null;
  name: string;
  count: number;
  /** As typed, e.g. `team=vision`. */
  tags: string[];
}

export interface LaunchStepProps {
  types: InstanceTypes | undefined;
  choice: LaunchChoice;
  onChange: (change: Partial<LaunchChoice>) => void;
}

/** Choices that belong to a region and are reset when the region changes. */
export const noRegion = { region: null, image: null, filesystems: [], rulesets: [] };

export const emptyChoice: LaunchChoice = {
  ...noRegion,
  type: null,
  sshKey: null,
  name: '',
  count: 1,
  tags: [],
};

export function isStepComplete(step: number, choice: LaunchChoice): boolean {
  const { type, region, image, sshKey, count, tags } = choice;
  if (step === 0) return type !== null;
  if (step === 1) return region !== null && image !== null;
  return sshKey !== null && count >= 1 && findTagError(tags) === null;
}

export function toLaunch(choice: LaunchChoice): Launch {
  const { type, region, image, filesystems, rulesets, sshKey, name, tags } = choice;
  return {
    instance_type_name: type ?? '',
    region_name: region ?? '',
    ssh_key_names: [sshKey ?? ''],
    file_system_names: filesystems,
    firewall_rulesets: rulesets.map((id) => ({ id })),
    ...(tags.length === 0 ? {} : { tags: tags.map(toTag) }),
    ...(image === null ? {} : { image: { id: image } }),
    ...(name.trim() === '' ? {} : { name: name.trim() }),
  };
}
