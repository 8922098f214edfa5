// The page's policy allows style elements that carry its nonce, and no style attributes. The terminal
// library knows neither rule and has no option for them, so what it makes is bent to follow them.

/** Style elements made meanwhile carry the nonce. */
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
    // The prototype's own shows again.
    Reflect.deleteProperty(document, 'createElement');
  }
}

/** Colours of single characters are style attributes on spans; the object model may set the same. */
export function styleSpansByScript(): void {
  const { setAttribute } = Element.prototype;
  HTMLSpanElement.prototype.setAttribute = function (name, value) {
    if (name === 'style') this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };
}
