// What the page saves as files.

function save(name, blob) {
  const link = element("a", undefined, undefined, { href: URL.createObjectURL(blob), download: `${data.file}${name}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** The chart at twice a fixed size, with figures and colors above it. */
function picture() {
  const canvas = new OffscreenCanvas(2400, 1200);
  const ctx = canvas.getContext("2d");
  ctx.scale(2, 2);
  const head = 64;
  ctx.save();
  ctx.translate(0, head);
  new Drawing(ctx, 1200, 600 - head, view()).draw();
  ctx.restore();
  const colors = theme();
  ctx.fillStyle = colors.card;
  ctx.fillRect(0, 0, 1200, head);
  ctx.fillStyle = colors.text;
  ctx.font = "600 20px system-ui, sans-serif";
  ctx.fillText(document.title, 20, 30, 1160);
  ctx.font = FONT;
  ctx.fillStyle = colors.muted;
  const figures = [...document.querySelectorAll(".figure")].map((figure) => figure.innerText.split("\n").slice(0, 2).join(" "));
  ctx.fillText(figures.join(" · ") || run.name, 20, 52);
  let x = 1188;
  ctx.textAlign = "right";
  for (const [name, kind] of kinds().reverse()) {
    ctx.fillStyle = colors.muted;
    ctx.fillText(name, x, 52);
    x -= ctx.measureText(name).width + 16;
    for (const fill of kind === AGAIN ? [colors.kinds[kind], hatch(ctx, colors.kinds[kind])] : [colors.kinds[kind]]) {
      ctx.fillStyle = fill;
      ctx.fillRect(x, 42, 11, 11);
    }
    x -= 16;
  }
  return canvas.convertToBlob({ type: "image/png" });
}
