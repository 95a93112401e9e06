// Takes the chosen theme before the page is drawn, so that it does not flash. Without a choice the system's is used.
const theme = localStorage.getItem("openfield-theme");
if (theme) document.documentElement.dataset.theme = theme;
