// The region codes that clients know. Some clients reject other codes, so every host has one of these as its
// region.

export interface RegionInfo {
  readonly name: string;
  readonly description: string;
}

export const regions: readonly RegionInfo[] = [
  { name: 'us-west-1', description: 'California, USA' },
  { name: 'us-west-2', description: 'Arizona, USA' },
  { name: 'us-west-3', description: 'Utah, USA' },
  { name: 'us-east-1', description: 'Virginia, USA' },
  { name: 'us-east-2', description: 'Washington DC, USA' },
  { name: 'us-east-3', description: 'Washington DC, USA' },
  { name: 'us-south-1', description: 'Texas, USA' },
  { name: 'us-south-2', description: 'North Texas, USA' },
  { name: 'us-south-3', description: 'Central Texas, USA' },
  { name: 'us-midwest-1', description: 'Illinois, USA' },
  { name: 'us-midwest-2', description: 'Ohio, USA' },
  { name: 'europe-central-1', description: 'Germany' },
  { name: 'me-west-1', description: 'Israel' },
  { name: 'asia-south-1', description: 'India' },
  { name: 'asia-northeast-1', description: 'Osaka, Japan' },
  { name: 'asia-northeast-2', description: 'Tokyo, Japan' },
  { name: 'australia-east-1', description: 'Sydney, Australia' },
];

/** The region in which firewall rules have no effect. */
export const regionWithoutFirewall = 'us-south-1';

export const findRegion = (name: string): RegionInfo | undefined =>
  regions.find((region) => region.name === name);

/** Takes a name from the database, which was validated when it was stored. */
export const toRegion = (name: string): RegionInfo =>
  findRegion(name) ?? { name, description: name };
