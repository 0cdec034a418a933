// The colors of areas, and what tells them apart without their hue.

/** The colors of the theme. */
function theme() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  const named = ["text", "muted", "line", "card", "other", "budget"].map((name) => [name, color(`--${name}`)]);
  return { kinds: KINDS.map(([, name]) => color(name)), ...Object.fromEntries(named) };
}

/** Red, green and blue of `#rrggbb`. */
function channels(color) {
  return [1, 3, 5].map((place) => parseInt(color.slice(place, place + 2), 16));
}

/** A color in one of four lightnesses: neighbors of one kind are told apart. */
function shade(color, tensor) {
  const [towards, share] = [[255, 0.12], [0, 0], [0, 0.1], [0, 0.2]][tensor % 4];
  const parts = channels(color).map((part) => Math.round(part + (towards - part) * share));
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/** Black or white, whichever is easier to read on a color. */
function ink(color) {
  const [red, green, blue] = channels(color).map((part) => (part / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.19 ? "#10151c" : "#ffffff";
}

/** Lines across what is computed again, so that it is told apart without its color. */
function hatch(ctx, color) {
  const tile = new OffscreenCanvas(8, 8);
  const pen = tile.getContext("2d");
  pen.strokeStyle = ink(color);
  pen.globalAlpha = 0.28;
  pen.lineWidth = 1.2;
  for (const shift of [-8, 0, 8]) {
    pen.beginPath();
    pen.moveTo(shift, 8);
    pen.lineTo(shift + 8, 0);
    pen.stroke();
  }
  return ctx.createPattern(tile, "repeat");
}
