// Sizes in bytes as text, e.g. "97.7 KiB".

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function toSize(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  return `${value.toFixed(power === 0 || value >= 100 ? 0 : 1)} ${units[power]}`;
}
