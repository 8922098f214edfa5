// Converts nano-dollars, as stored, to US dollars, as shown.

export const toDollars = (nano: number): number => nano / 1e9;
