// Images that a message carries, as data URLs. They are scaled down first: models see no more than this, and it
// removes what a camera wrote into the file, such as the place.

export const maxImages = 4;
/** Pixels of the longer side. */
const maxSide = 1568;
const maxFileBytes = 20 * 1024 * 1024;
const maxUrlLength = 700_000;

export const isImage = ({ type }: File) => /^image\/(png|jpeg|webp|gif)$/.test(type);

/** Rejects with a sentence for the user. */
export async function toImageUrl(file: File): Promise<string> {
  if (!isImage(file)) throw new Error(`${file.name} is not a PNG, JPEG, WebP or GIF image.`);
  if (file.size > maxFileBytes) throw new Error(`${file.name} is larger than 20 MB.`);
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new Error(`${file.name} can’t be read as an image.`);
  });
  const scale = Math.min(1, maxSide / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext('2d');
  if (context === null) throw new Error('This browser can’t prepare images.');
  // JPEG has no transparency.
  context.fillStyle = '#fff';
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  const url = canvas.toDataURL('image/jpeg', 0.85);
  if (url.length > maxUrlLength) throw new Error(`${file.name} is too detailed. Crop it first.`);
  return url;
}
