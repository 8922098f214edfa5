// Billionths of a US dollar, as kept, into dollars, as told.

export const toDollars = (nano: number): number => nano / 1e9;
