// Names where a setting was made, so that an error can point to it.

/** `millrace.yaml:3`, an environment variable or a flag. */
export type PlaceOf = (path: readonly (string | number)[]) => string;
