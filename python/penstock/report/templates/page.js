"use strict";
// Shows at once, beside the pointer, what a mark says. Without this the browser shows the same
// texts, a moment later. Texts are only ever text here, never markup.
(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  document.body.append(tip);

  for (const title of document.querySelectorAll("svg title")) {
    const owner = title.parentElement;
    owner.setAttribute("aria-label", title.textContent);
    if (owner.tagName === "svg") {
      owner.setAttribute("aria-describedby", owner.querySelector("desc").id);
      owner.removeAttribute("aria-labelledby");
    } else {
      owner.dataset.tip = title.textContent;
    }
    title.remove();
  }

  const place = (event) => {
    const gap = 14;
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + gap, innerWidth - box.width - 4);
    const below = event.clientY + gap;
    const top = below + box.height > innerHeight ? event.clientY - box.height - gap : below;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, top)}px`;
  };
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest("[data-tip]");
    tip.hidden = mark === null;
    if (mark !== null) {
      tip.textContent = mark.dataset.tip;
      place(event);
    }
  });
  document.addEventListener("pointermove", (event) => {
    if (!tip.hidden) place(event);
  });
  document.documentElement.addEventListener("pointerleave", () => {
    tip.hidden = true;
  });
})();
