// Small helpers for the document.

export const byId = (id) => document.getElementById(id);

/** An element with children or text. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  Object.assign(made, attributes);
  made.append(...children);
  return made;
}

/** Shows an error where `place` says, or hides the last one. */
export function showError(place, error) {
  place.hidden = !error;
  place.textContent = error?.message ?? "";
}

/** A whole number with separators. */
export const readable = (number) => number.toLocaleString("en");

/** A time that is not more exact than it was measured. */
export const readableTime = (milliseconds) => `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`;
