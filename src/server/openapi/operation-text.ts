// What the API description says about one operation besides its schema.

export interface OperationText {
  description: string;
  /** An example of the request body. */
  body?: object;
  /** An example of the response. */
  response?: object;
}
