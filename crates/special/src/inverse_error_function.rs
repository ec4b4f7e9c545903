//! Inverses of the error functions.

use cuprum_core::numpy;
use cuprum_macros::kernel;

kernel! {
    // Coefficients of erfinv(x) / x in powers of x^2, for |x| <= 5/8.
    const ERFINV_COEFFICIENTS: [f64; 17] = [0.886226925452758, 0.2320136665346418, 0.1275561753086689, 0.08655212894744849, 0.06495963253978704, 0.051730831580193405, 0.04284573495285561, 0.03634099586162229, 0.03292877750339541, 0.018989319496343502, 0.07317163982133348, -0.16793942593709593, 0.5725363383883487, -1.1236894632001588, 1.63033283129129, -1.3939615785008372, 0.61263179882923];
    // Coefficients of erfcinv(y) / s in powers of s - centre, where s = sqrt(-log(y)). Each row belongs to one interval of s, and `centre`
    // is a point near its middle.
    const ERFCINV_COEFFICIENTS: [[f64; 20]; 6] = [[0.7097285845428166, 0.2484293436197252, -0.15373812356132444, 0.07587855038595713, -0.027763060253034523, 0.004024007234723082, 0.004514206793761913, -0.0054997636495555625, 0.003784141484344076, -0.0018116712270086226, 0.00046255922046818573, 0.00018725945392439, -0.00035706228134340805, 0.00029263102888899684, -0.00016457060945214248, 5.771050517021131e-05, 3.2529911841416584e-06, -2.521702304322327e-05, 2.7642004107220576e-05, -1.9167538887888e-05], [0.8340941580292482, 0.10772943257089955, -0.05341755929041622, 0.02313098788272218, -0.0089894516819523, 0.0031079991299491276, -0.0009090671626379102, 0.000185982424035937, 7.160970597848556e-06, -3.600169922334772e-05, 2.617111134565759e-05, -1.3890825181646848e-05, 6.164034976275901e-06, -2.332739011000731e-06, 7.165972920578369e-07, -1.4025983858377628e-07, -1.5285865022543496e-08, 4.053806845315563e-08, -4.015641335632502e-08, 2.0022830069983317e-08], [0.924086495449491, 0.03211590359625005, -0.010601426526942088, 0.003154696177279917, -0.0008816096669293959, 0.00023506288444237616, -6.0167018823724346e-05, 1.4797951198949493e-05, -3.485575833635039e-06, 7.795938857415591e-07, -1.6267253456695319e-07, 3.0464798098652925e-08, -4.601223860881556e-09, 3.02933664944187e-10, 1.569297479172625e-10, -9.788085967911919e-11, 3.435561973590773e-11, -1.1807679195825029e-11, 5.770439580762122e-12, -1.605986627738865e-12], [0.9708560984343867, 0.007182959564393291, -0.0013854919203328483, 0.00024266648743103995, -4.032453645115839e-05, 6.476711750936028e-06, -1.014991212913554e-06, 1.5602731464708955e-07, -2.3601962587557622e-08, 3.520011476997113e-09, -5.181871780629436e-10, 7.533831404597999e-11, -1.081599765757114e-11, 1.5338065320599715e-12, -2.157266679774451e-13, 2.974403252230067e-14, -3.802645784728202e-15, 5.091292606416735e-16, -9.40516270933711e-17, 1.162554696275416e-17], [0.9893527496558695, 0.0014884205214827913, -0.0001623487504685544, 1.6074040874955204e-05, -1.51144319178624e-06, 1.3762506934991736e-07, -1.2258047333606e-08, 1.074263274288205e-09, -9.297573263985229e-11, 7.966532841811117e-12, -6.769475251465312e-13, 5.710605766872079e-14, -4.786349961370401e-15, 4.0018791876059054e-16, -3.3432938157757735e-17, 2.6842613048118696e-18, -2.0455122592551494e-19, 1.9798389476851662e-20, -2.252180160414785e-21, 1.3210971919118194e-22], [0.9962111595385043, 0.00029774760343172316, -1.8185877189289528e-05, 1.006365053412169e-06, -5.28394368316093e-08, 2.685489190087588e-09, -1.334999501580035e-10, 6.531091627289492e-12, -3.156618382270384e-13, 1.5112069971863655e-14, -7.179534669444362e-16, 3.3892927118696394e-17, -1.590732053825602e-18, 7.434456713035931e-20, -3.490308771171473e-21, 1.6216967409020702e-22, -6.814687086865326e-24, 3.110361506450701e-25, -2.3276695422166573e-26, 1.0875878660020647e-27]];

    /// Returns the inverse of erfc for 0 <= y <= 3/8.
    #[helper]
    fn erfcinv_tail(y: f64) -> f64 {
        if !(y > 0.0) {
            return if y < 0.0 { NAN } else { 1.0 / y.abs() };
        }
        let s = (-y.ln()).sqrt();
        let mut row = 0;
        let mut centre = 1.25;
        if s > 1.5 { row = 1; centre = 2.0; }
        if s > 2.5 { row = 2; centre = 3.5; }
        if s > 4.5 { row = 3; centre = 6.5; }
        if s > 8.5 { row = 4; centre = 12.0; }
        if s > 16.0 { row = 5; centre = 22.0; }
        s * (s - centre).polynomial(ERFCINV_COEFFICIENTS[row])
    }

    #[helper]
    fn erfinv_f64(x: f64) -> f64 {
        if x.abs() <= 0.625 {
            return x * (x * x).polynomial(ERFINV_COEFFICIENTS);
        }
        erfcinv_tail(1.0 - x.abs()).copysign(x)
    }

    #[helper]
    fn erfcinv_f64(y: f64) -> f64 {
        if y < 0.375 {
            return erfcinv_tail(y);
        }
        erfinv_f64(1.0 - y)
    }

    #[helper]
    fn ndtri_f64(y: f64) -> f64 {
        if y < 0.1875 {
            return -SQRT_2 * erfcinv_tail(2.0 * y);
        }
        SQRT_2 * erfinv_f64(2.0 * y - 1.0)
    }

    /// Returns the inverse of the error function (`scipy.special.erfinv`), elementwise.
    ///
    /// The result is infinite at -1 and 1, and NaN outside.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::erfinv(0.0)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.erfinv(y, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn erfinv<T: Single>(y: T) -> T {
        erfinv_f64(y as f64) as T
    }

    /// Returns the inverse of the complementary error function (`scipy.special.erfcinv`), elementwise.
    ///
    /// The result is infinite at 0 and 2, and NaN outside.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::erfcinv(1.0)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.erfcinv(y, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn erfcinv<T: Single>(y: T) -> T {
        erfcinv_f64(y as f64) as T
    }

    /// Returns the inverse of the normal distribution function, its quantiles (`scipy.special.ndtri`), elementwise.
    ///
    /// The result is infinite at 0 and 1, and NaN outside.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::ndtri(0.5)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.ndtri(y, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn ndtri<T: Single>(y: T) -> T {
        ndtri_f64(y as f64) as T
    }
}
