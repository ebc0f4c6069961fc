document.title = "Trunkline console";
