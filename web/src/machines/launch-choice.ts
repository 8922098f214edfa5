// What the launch page collects, and the request it becomes.

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
  /** A script or cloud-config for the first boot. */
  userData: string;
}

export interface LaunchPartProps {
  types: InstanceTypes | undefined;
  choice: LaunchChoice;
  onChange: (change: Partial<LaunchChoice>) => void;
}

/** What the API said about a member of the launch. */
export type FieldErrors = Partial<Record<string, string>>;

/** Choices that belong to a region and are reset when the region changes. */
export const noRegion = { region: null, image: null, filesystems: [], rulesets: [] };

export const emptyChoice: LaunchChoice = {
  ...noRegion,
  type: null,
  sshKey: null,
  name: '',
  count: 1,
  tags: [],
  userData: '',
};

/** What is missing, as the user reads it; null if the machine can be launched. */
export function findMissing(choice: LaunchChoice): string | null {
  const { type, region, image, sshKey, count, tags } = choice;
  if (type === null) return 'Choose a machine type.';
  if (region === null || image === null) return 'Choose a region and an image.';
  if (sshKey === null) return 'Choose or generate an SSH key.';
  if (count < 1) return 'Enter how many machines to launch.';
  return findTagError(tags) === null ? null : 'Correct the tags.';
}

export function toLaunch(choice: LaunchChoice): Launch {
  const { type, region, image, filesystems, rulesets, sshKey, name, tags, userData } = choice;
  return {
    instance_type_name: type ?? '',
    region_name: region ?? '',
    ssh_key_names: [sshKey ?? ''],
    ...(filesystems.length === 0 ? {} : { file_system_names: filesystems }),
    ...(rulesets.length === 0 ? {} : { firewall_rulesets: rulesets.map((id) => ({ id })) }),
    ...(userData.trim() === '' ? {} : { user_data: `${userData.trimEnd()}\n` }),
    ...(tags.length === 0 ? {} : { tags: tags.map(toTag) }),
    ...(image === null ? {} : { image: { id: image } }),
    ...(name.trim() === '' ? {} : { name: name.trim() }),
  };
}
