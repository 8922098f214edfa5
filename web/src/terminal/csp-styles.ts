// Makes the terminal library comply with the content security policy, which allows style elements only with the
// nonce and no style attributes. The library has no option for either.

/** Style elements that `make` creates get the nonce. */
export function withNonce(nonce: string, make: () => void): void {
  const createElement = document.createElement.bind(document);
  document.createElement = (name: string, options?: ElementCreationOptions) => {
    const element = createElement(name, options);
    if (name === 'style') element.nonce = nonce;
    return element;
  };
  try {
    make();
  } finally {
    // Uncovers the prototype's method again.
    Reflect.deleteProperty(document, 'createElement');
  }
}

/** Sets style attributes on spans, which color characters, through the object model: the policy allows that. */
export function styleSpansByScript(): void {
  const { setAttribute } = Element.prototype;
  HTMLSpanElement.prototype.setAttribute = function (name, value) {
    if (name === 'style') this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };
}
