// How a token looks: its bytes as text in which everything can be seen.

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const SYMBOLS = new Map([[" ", "·"], ["\n", "↵"], ["\t", "⇥"]]);

/** Bytes as hexadecimal digits. */
export function hexadecimal(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
}

/** The text of a token; its bytes in brackets where they are no whole characters. */
export function visibleText(bytes) {
  try {
    return Array.from(decoder.decode(bytes), visibleCharacter).join("");
  } catch {
    return `⟨${hexadecimal(bytes)}⟩`;
  }
}

function visibleCharacter(character, index) {
  const symbol = SYMBOLS.get(character);
  if (symbol) return symbol;
  // Controls, formats, separators and what is not assigned have no shape of their own.
  if (/[\p{C}\p{Z}]/u.test(character)) {
    return `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
  }
  // A mark needs something to stand on.
  return index === 0 && /\p{M}/u.test(character) ? `◌${character}` : character;
}
